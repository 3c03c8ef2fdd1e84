-- all agents: the mode belongs to the installation.
select mode, set_by, set_at
from inference_settings
